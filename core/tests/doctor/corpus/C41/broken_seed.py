import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

first = iter([0, 1])


def train():
    torch.manual_seed(next(first))
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(8, 4)).square().mean().backward()
        optimizer.step()


print(doctor.compare(train, train))  # <- C41
