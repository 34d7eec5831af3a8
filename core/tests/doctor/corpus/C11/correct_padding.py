import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# Tokens and a mask: no floats, no NaN.
tokens = torch.randint(1, 1000, (32, 20))
batch = {"input_ids": tokens, "mask": tokens != 0, "labels": torch.randint(0, 2, (32,))}
print(doctor.check_inputs(batch))
