import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
conv = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))
print(doctor.check_gradients(conv, nn.CrossEntropyLoss(), (torch.rand(8, 3, 16, 16), torch.randint(0, 10, (8,)))))
