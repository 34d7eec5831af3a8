import mortice as torch
from mortice import nn

torch.manual_seed(0)
# Targets around 0 need no bias; nor do the scores of classes in a language model.
model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(64, 3)
y = torch.sin(x.sum(1, keepdim=True))
for epoch in range(10):
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()

words = nn.Embedding(30, 16)
head = nn.Linear(16, 30, bias=False)
head.weight = words.weight
optimizer = torch.optim.Adam(words.parameters(), lr=1e-2)
for step in range(10):
    tokens = torch.randint(0, 30, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(head(words(tokens)), (tokens + 1) % 30).backward()
    optimizer.step()
