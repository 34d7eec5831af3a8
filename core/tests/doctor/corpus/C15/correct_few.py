import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# In a few samples some features are bound to agree.
x = torch.randint(0, 2, (6, 10)).float()
print(doctor.check_inputs((x, torch.tensor([0, 1, 0, 1, 0, 1]))))
