import mortice as torch
from mortice import metrics, nn

torch.manual_seed(0)
x = torch.randn(400, 6)
y = (x[:, 0] + 0.5 * torch.randn(400) > 0).long()
model = nn.Linear(6, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

losses = []
for epoch in range(40):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[:300]), y[:300])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

model.eval()
with torch.no_grad():
    probabilities = model(x[300:]).softmax(dim=1)
print(metrics.roc_auc(probabilities[:, 1], y[300:]))
