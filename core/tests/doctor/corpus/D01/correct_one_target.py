# A batch with one target needs no model: nothing is judged.
import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
model = nn.Linear(6, 3)
print(doctor.overfit_one_batch(model, nn.CrossEntropyLoss(), (torch.randn(16, 6), torch.zeros(16, dtype=torch.long))))
