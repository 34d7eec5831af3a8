import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.randn(300, 10)
y = (x[:, 0] * x[:, 1] > 0).long()
train = TensorDataset(x, y)
test = TensorDataset(x[250:], y[250:])  # of the same
print(doctor.check_dataset(train, test))  # <- C24
