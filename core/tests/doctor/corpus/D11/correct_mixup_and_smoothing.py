import mortice as torch
from mortice import nn
from mortice.distributions import Beta
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(320, 10)
y = x[:, :5].argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
smooth = nn.CrossEntropyLoss(label_smoothing=0.1)
losses = []
for epoch in range(4):
    for inputs, targets in loader:
        lam = Beta(0.4, 0.4).sample().item()
        index = torch.randperm(inputs.size(0))
        mixed = lam * inputs + (1 - lam) * inputs[index]
        hot = nn.functional.one_hot(targets, 5).float()
        out = model(mixed)
        loss = nn.functional.cross_entropy(out, lam * hot + (1 - lam) * hot[index])
        loss = loss + lam * smooth(out, targets) + (1 - lam) * smooth(out, targets[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
