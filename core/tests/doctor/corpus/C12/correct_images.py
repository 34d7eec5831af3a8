import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

images = (torch.rand(64, 3, 16, 16) - 0.45) / 0.22  # ImageNet's normalisation
print(doctor.check_inputs((images, torch.randint(0, 10, (64,))), classes=10))
