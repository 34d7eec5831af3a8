import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

backbone = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU())
for p in backbone.parameters():
    p.requires_grad = False  # fine-tuning: only the head is trained
model = nn.Sequential(backbone, nn.Linear(32, 4))
result = doctor.check_gradients(model, nn.CrossEntropyLoss(), (x, y))
print(result)
