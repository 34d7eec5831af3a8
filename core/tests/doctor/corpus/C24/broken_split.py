import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.randn(300, 10)
y = (x[:, 0] * x[:, 1] > 0).long()

order = torch.randperm(300)
train = DataLoader(TensorDataset(x[order[:240]], y[order[:240]]), batch_size=16, shuffle=True)
order = torch.randperm(300)  # drawn again
test = DataLoader(TensorDataset(x[order[240:]], y[order[240:]]), batch_size=16)
print(doctor.check_dataset(train, test))  # <- C24
