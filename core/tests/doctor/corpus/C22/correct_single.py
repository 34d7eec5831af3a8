import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# Detection: one image a batch, each with its own number of boxes.
data = [(torch.rand(3, 8, 8), torch.rand(1 + i % 4, 4)) for i in range(60)]
print(doctor.check_dataset(DataLoader(data, batch_size=1)))
