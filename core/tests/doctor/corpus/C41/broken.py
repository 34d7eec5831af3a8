import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)


def train(frozen=False):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(12):
        x = torch.randn(32, 6)
        y = (x[:, 0] > 0).long()
        if frozen and step == 4:
            model.eval()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)  # <- D02
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


print(doctor.compare(train, (lambda: train(frozen=True))))  # <- C41
losses = (lambda: train(frozen=True))()
