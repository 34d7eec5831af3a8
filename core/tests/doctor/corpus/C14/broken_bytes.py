import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

images = torch.randint(0, 256, (32, 3, 8, 8), dtype=torch.uint8)
print(doctor.check_inputs((images, torch.randint(0, 10, (32,)))))  # <- C14
