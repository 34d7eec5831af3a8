import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

sentences = [torch.randint(1, 100, (int(n),)) for n in torch.randint(4, 12, (60,))]
data = [(s, i % 2) for i, s in enumerate(sentences)]
print(doctor.check_dataset(DataLoader(data, batch_size=8)))  # <- C22
