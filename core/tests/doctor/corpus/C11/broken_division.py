import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

counts = torch.randint(0, 4, (64, 6)).float()
shares = counts / counts[:, :1]  # some of the first are 0
print(doctor.check_inputs((shares, torch.randint(0, 2, (64,)))))  # <- C11
