# raises: Optimize the parameter itself
import mortice as torch

w = torch.randn(3, 3, requires_grad=True).double()
optimizer = torch.optim.Adam([w], lr=0.01)
