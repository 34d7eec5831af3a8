import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

text = torch.randint(0, 60, (8, 33))
print(doctor.check_inputs((text[:, :-1], text[:, :-1])))  # <- C17
