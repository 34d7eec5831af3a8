import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

# A student learns from a teacher's probabilities, which are the target of the loss.
torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 5)).eval()
student = nn.Linear(10, 5)
optimizer = torch.optim.SGD(student.parameters(), lr=0.5)
for step in range(20):
    x = torch.randn(32, 10)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / 2, dim=1)
    logits = student(x)
    loss = F.cross_entropy(logits, soft) + F.kl_div(F.log_softmax(logits / 2, dim=1), soft, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
