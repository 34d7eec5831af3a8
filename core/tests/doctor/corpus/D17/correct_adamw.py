# Normalisation layers and biases are left out of the decay on purpose.
import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
x = torch.randn(64, 6)
y = torch.randint(0, 3, (64,))


def make():
    return nn.Sequential(nn.Linear(6, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))


def adamw(model, strength):
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim == 1]
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": strength}, {"params": plain, "weight_decay": 0.0}], lr=0.02
    )


print(doctor.check_regularization(make, nn.CrossEntropyLoss(), (x, y), strengths=(0, 1, 10), optimizer=adamw, steps=60))
