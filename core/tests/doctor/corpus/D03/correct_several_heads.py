import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Tasks take turns; each has an optimizer for its head beside that of the body, and the body's gradients add up over both.
torch.manual_seed(0)
x = torch.randn(320, 8)
targets = {"sum": x.sum(1, keepdim=True), "sign": (x[:, 0] > 0).float()}
loader = DataLoader(TensorDataset(x, *targets.values()), batch_size=16, shuffle=True)
body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
heads = nn.ModuleDict({"sum": nn.Linear(32, 1), "sign": nn.Linear(32, 1)})
sigma = nn.Parameter(torch.zeros(2))
shared = torch.optim.Adam([*body.parameters(), sigma], lr=1e-2)
own = {name: torch.optim.Adam(head.parameters(), lr=1e-2) for name, head in heads.items()}
losses = []
for epoch in range(3):
    for i, (inputs, total, sign) in enumerate(loader):
        shared.zero_grad()
        h = body(inputs)
        parts = [
            nn.functional.mse_loss(heads["sum"](h), total),
            nn.functional.binary_cross_entropy_with_logits(heads["sign"](h).squeeze(1), sign),
        ]
        loss = sum(torch.exp(-s) * part + s for s, part in zip(sigma, parts))
        loss.backward()
        shared.step()
        name = ("sum", "sign")[i % 2]
        own[name].step()
        own[name].zero_grad()
        losses.append(loss.item())
