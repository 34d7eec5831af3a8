import mortice as torch
import mortice.nn as nn
from mortice.nn.functional import cross_entropy

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
x, y = torch.randn(120, 8), torch.randint(0, 4, (120,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(5):
    model.train()
    optimizer.zero_grad()
    loss = cross_entropy(model(x[:80]), y[:80])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        probabilities = torch.softmax(model(x[80:]), dim=1)
        validation = cross_entropy(probabilities, y[80:])  # <- D04
