import mortice as torch
import mortice.nn.functional as F
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(320, 10)
y = x[:, :4].argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 4))
student = nn.Linear(10, 4)
for net, epochs in ((teacher, 3), (student, 3)):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for epoch in range(epochs):
        net.train()
        for inputs, targets in loader:
            logits = net(inputs)
            loss = F.cross_entropy(logits, targets)
            if net is student:
                teacher.eval()
                with torch.no_grad():
                    soft = F.softmax(teacher(inputs) / 4, dim=1)
                loss = loss + 16 * nn.KLDivLoss(reduction="batchmean")(F.log_softmax(logits / 4, dim=1), soft)
                loss = loss + F.cross_entropy(logits, soft)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
