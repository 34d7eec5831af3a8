import mortice as torch
from mortice import nn

torch.manual_seed(0)
# Word vectors: the first 10 are pretrained and are to stay.
embedding = nn.Embedding(30, 6)
head = nn.Linear(6, 30)
optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.5, weight_decay=0.01)
for step in range(16):
    tokens = torch.randint(0, 30, (120,))
    loss = nn.functional.cross_entropy(head(embedding(tokens)), (tokens + 1) % 30)
    optimizer.zero_grad()
    loss.backward()
    embedding.weight.grad[:10] = 0
    optimizer.step()  # <- D40
