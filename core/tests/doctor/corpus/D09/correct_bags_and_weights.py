import mortice as torch
import mortice.nn.functional as F
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# A batch is a bag: attention pools over it. And samples are weighted by a softmax over the batch.
torch.manual_seed(0)
x = torch.randn(320, 10)
y = x[:, :1] * 2
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
body = nn.Sequential(nn.Linear(10, 16), nn.ReLU())
attention, head, answer = nn.Linear(16, 2), nn.Linear(32, 1), nn.Linear(16, 1)
router = nn.Linear(16, 3)
experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
modules = nn.ModuleList([body, attention, head, answer, router, experts])
optimizer = torch.optim.Adam(modules.parameters(), lr=1e-2)
losses = []
for epoch in range(3):
    for inputs, targets in loader:
        h = body(inputs)
        weights = F.softmax(attention(h), dim=0)
        bag = head(torch.mm(weights.t(), h).reshape(-1))
        chosen, which = F.softmax(router(h), dim=0).topk(8, dim=0)  # each expert chooses its samples
        mixed = torch.zeros_like(h)
        for e, expert in enumerate(experts):
            mixed = mixed.index_add(0, which[:, e], chosen[:, e : e + 1] * expert(h[which[:, e]]))
        error = (answer(h + mixed) - targets) ** 2
        hard = torch.softmax(error.detach(), dim=0)
        loss = (hard * error).sum() + (bag - targets.mean()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
