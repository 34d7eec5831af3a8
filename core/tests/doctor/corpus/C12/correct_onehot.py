import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# Rare indicator columns deviate little, beside features that were scaled.
onehot = nn.functional.one_hot(torch.randint(0, 30, (300,)), 30).float()
x = torch.cat([torch.randn(300, 3), onehot], 1)
print(doctor.check_inputs((x, torch.randint(0, 2, (300,)))))
