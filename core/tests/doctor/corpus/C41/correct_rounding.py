import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# A sum in another order differs in the last bits, and that is no parting.
x = torch.randn(32, 6)


def train(order):
    torch.manual_seed(1)
    model = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        out = model(x)
        loss = sum(out[:, i].square().mean() for i in order)
        loss.backward()
        optimizer.step()


print(doctor.compare(lambda: train([0, 1, 2, 3, 4, 5]), lambda: train([5, 3, 1, 0, 2, 4])))
