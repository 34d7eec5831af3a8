import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x, y = torch.randn(64, 4), torch.randn(64, 1)


def run(shuffle):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=shuffle):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


print(doctor.compare(lambda: run(False), lambda: run(True)))  # <- C41
