import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

items = [(torch.rand(3, 8, 8), i % 3) for i in range(60)]
items[7] = (None, 1)  # could not be loaded
print(doctor.check_dataset(items))  # <- C22
