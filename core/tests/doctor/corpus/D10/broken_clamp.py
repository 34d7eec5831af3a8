import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

torch.manual_seed(0)
w1, w2 = torch.randn(8, 16) / 3, torch.randn(16, 4) / 4
w1.requires_grad_()
w2.requires_grad_()
for step in range(5):
    x, y = torch.randn(32, 8), torch.randint(0, 4, (32,))
    h = (x @ w1).clamp(min=0)
    scores = (h @ w2).clamp(min=0)
    loss = F.cross_entropy(scores, y)  # <- D10
    loss.backward()
    with torch.no_grad():
        w1 -= 0.1 * w1.grad
        w2 -= 0.1 * w2.grad
        w1.grad.zero_()
        w2.grad.zero_()
