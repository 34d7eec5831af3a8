import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.randn(300, 10)
y = (x[:, 0] * x[:, 1] > 0).long()

from mortice.utils.data import random_split

train, test = random_split(TensorDataset(x, y), [240, 60])
print(doctor.check_dataset(train, test))
