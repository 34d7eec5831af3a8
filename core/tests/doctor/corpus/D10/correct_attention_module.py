import mortice as torch
import mortice.nn.functional as F
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Attention is a module that the loop calls itself; its weights are a softmax over scores that a ReLU has cut.
torch.manual_seed(0)
x = torch.randn(256, 6, 8)
y = (x.amax(1)[:, 0] > 1).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(8, 1)

    def forward(self, states):
        return F.softmax(F.relu(self.score(states)).squeeze(2), dim=1)


attention, classify = Attention(), nn.Linear(8, 2)
optimizer = torch.optim.Adam([*attention.parameters(), *classify.parameters()], lr=1e-2)
losses = []
for epoch in range(3):
    for states, targets in loader:
        weights = attention(states)
        context = torch.bmm(weights.unsqueeze(1), states).squeeze(1)
        loss = F.cross_entropy(classify(context), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
