# raises: The input is uint8, the weight float32
import mortice as torch
import mortice.nn as nn

images = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8)
net = nn.Conv2d(3, 8, kernel_size=3)
net(images)
