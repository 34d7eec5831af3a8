import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

labels = torch.randint(-1, 4, (64,))
print(doctor.check_inputs((torch.randn(64, 5), labels)))  # <- C18
