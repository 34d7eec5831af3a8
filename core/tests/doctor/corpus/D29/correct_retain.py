import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
encoder, head_a, head_b = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 3)
params = [*encoder.parameters(), *head_a.parameters(), *head_b.parameters()]
optimizer = torch.optim.Adam(params)
x, a, b = torch.randn(32, 6), torch.randn(32, 1), torch.randint(0, 3, (32,))

for step in range(12):
    optimizer.zero_grad()
    shared = torch.tanh(encoder(x))
    nn.functional.mse_loss(head_a(shared), a).backward(retain_graph=True)
    nn.functional.cross_entropy(head_b(shared), b).backward()
    optimizer.step()
