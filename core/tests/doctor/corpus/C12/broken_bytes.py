import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

images = torch.randint(0, 256, (64, 3, 16, 16)).float()
labels = torch.randint(0, 10, (64,))
print(doctor.check_inputs((images, labels), classes=10))  # <- C12
