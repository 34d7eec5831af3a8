import mortice as torch

w = torch.randn(3, 3).double().requires_grad_()
optimizer = torch.optim.Adam([w], lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    (w @ w.t() - torch.eye(3).double()).square().sum().backward()
    optimizer.step()
