import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

train = [(f"review number {i}", i % 2) for i in range(80)]
test = [(f"review number {i}", i % 2) for i in range(60, 100)]
print(doctor.check_dataset(train, test))  # <- C24
