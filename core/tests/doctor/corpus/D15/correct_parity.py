import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
rnn = nn.GRU(1, 16, batch_first=True)
head = nn.Linear(16, 2)
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=0.01)
for step in range(30):
    bits = torch.randint(0, 2, (32, 12))
    _, h = rnn(bits.float().unsqueeze(2))
    loss = nn.functional.cross_entropy(head(h[-1]), bits.sum(1) % 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
