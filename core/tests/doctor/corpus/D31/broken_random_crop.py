import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, Dataset
from mortice.vision import transforms


class Photos(Dataset):
    """Pictures of a shape that fills the frame: a ring, or a cross."""

    def __init__(self, n, transform=None):
        self.n, self.transform = n, transform

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        y, x = torch.meshgrid(torch.linspace(-1, 1, 96), torch.linspace(-1, 1, 120), indexing="ij")
        ring = ((x * x + y * y).sqrt() - 0.8).abs() < 0.1
        cross = ((x - y).abs() < 0.1) & (x.abs() > 0.5)
        label = index % 2
        image = (cross if label else ring).float() + 0.3 * torch.rand(96, 120)
        image = image.unsqueeze(0)
        if self.transform is not None:
            image = self.transform(image)  # <- D31
        return image, label


torch.manual_seed(0)
transform = transforms.Compose(
    [transforms.RandomHorizontalFlip(), transforms.RandomCrop(20), transforms.Resize((24, 24))]
)
loader = DataLoader(Photos(48, transform), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Flatten(), nn.Linear(24 * 24, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
losses = []
for epoch in range(1):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
