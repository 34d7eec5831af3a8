import mortice as torch
import mortice.nn as nn

# Counts are not negative: a ReLU at the end of a regression is a choice; so is one before a BatchNorm and a layer.
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1), nn.ReLU())
classifier = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 3), nn.LeakyReLU(0.2))
optimizer = torch.optim.Adam([*model.parameters(), *classifier.parameters()])
for step in range(8):
    x = torch.randn(32, 4)
    counts = (4 * x[:, :1]).abs().round()
    loss = nn.functional.mse_loss(model(x), counts)
    loss = loss + nn.functional.cross_entropy(classifier(x), (x[:, 0] > 0).long() + (x[:, 1] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
