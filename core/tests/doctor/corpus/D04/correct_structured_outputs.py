import mortice as torch
import mortice.nn.functional as F
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Probabilities where they belong: dice, focal loss, binary cross entropy of a sigmoid, NLL of a mixture, CTC.
torch.manual_seed(0)
x = torch.randn(160, 10)
y = (x[:, :3] > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 9))
ctc = nn.CTCLoss(zero_infinity=True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
losses = []
for epoch in range(3):
    for inputs, targets in loader:
        labels, mixture, steps = net(inputs).split(3, dim=1)
        p = torch.sigmoid(labels)
        dice = 1 - (2 * (p * targets).sum() + 1) / (p.sum() + targets.sum() + 1)
        bce = F.binary_cross_entropy_with_logits(labels, targets, reduction="none")
        focal = ((1 - torch.exp(-bce)) ** 2 * bce).mean()
        weights = F.softmax(mixture, dim=1)
        nll = F.nll_loss(torch.log(0.9 * weights + 0.1 / 3), targets.argmax(1))
        logs = F.log_softmax(steps.unsqueeze(0).expand(4, -1, -1), dim=2)
        size = torch.full((len(inputs),), 4)
        aligned = ctc(logs, torch.ones(len(inputs), 2, dtype=torch.long), size, size // 2)
        loss = dice + focal + nll + 0.1 * aligned + F.binary_cross_entropy(p, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
