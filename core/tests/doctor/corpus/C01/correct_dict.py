import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
batch = {"image": torch.randn(16, 1, 8, 8), "label": torch.randint(0, 3, (16,))}
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))


def step(model, batch):
    return nn.functional.cross_entropy(model(batch["image"]), batch["label"])


print(doctor.check_gradients(model, None, batch, forward=step))
