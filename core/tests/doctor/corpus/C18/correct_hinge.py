import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

labels = 2 * torch.randint(0, 2, (64,)) - 1
print(doctor.check_inputs((torch.randn(64, 5), labels)))
