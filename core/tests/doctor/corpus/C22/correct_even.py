import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

data = [(torch.rand(12), torch.rand(2), i % 3) for i in range(60)]
print(doctor.check_dataset(DataLoader(data, batch_size=6)))
