import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

print(doctor.check_inputs((torch.randn(64, 5), torch.randint(0, 11, (64,))), classes=10))  # <- C18
