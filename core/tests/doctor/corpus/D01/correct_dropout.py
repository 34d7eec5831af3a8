# Dropout of the training and a strong weight decay stand in nobody's way.
import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
x, y = torch.randn(32, 10), torch.randint(0, 3, (32,))
model = nn.Sequential(nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.8), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.5)
print(doctor.overfit_one_batch(model, nn.CrossEntropyLoss(), (x, y), optimizer=optimizer))
