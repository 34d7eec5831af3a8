import mortice as torch
from mortice import nn

torch.manual_seed(0)
# Words that a batch does not hold and dead units have no gradient, and Adam moves them: as it should be.
words = nn.Embedding(50, 8, padding_idx=0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
with torch.no_grad():
    net[0].bias[::4] = -1.0
opt = torch.optim.AdamW([*words.parameters(), *net.parameters()], lr=1e-2)
for step in range(40):
    tokens, labels = torch.randint(0, 50, (4, 5)), torch.randint(0, 3, (4,))
    opt.zero_grad()
    nn.functional.cross_entropy(net(words(tokens).mean(1)), labels).backward()
    nn.utils.clip_grad_value_(net.parameters(), 0.1)
    opt.step()
