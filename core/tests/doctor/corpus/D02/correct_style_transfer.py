import mortice as torch
from mortice import nn

# The picture is what learns; the network stays as it is, in evaluation mode.
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.Dropout(0.5)
).eval()
content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)


def gram(f):
    b, c, h, w = f.size()
    f = f.view(b * c, h * w)
    return f @ f.t() / (b * c * h * w)


with torch.no_grad():
    wanted, texture = net(content), gram(net(style))
picture = content.clone().requires_grad_(True)
optimizer = torch.optim.LBFGS([picture], max_iter=4)
losses = []
for step in range(6):

    def closure():
        with torch.no_grad():
            picture.clamp_(0, 1)
        optimizer.zero_grad()
        f = net(picture)
        loss = nn.functional.mse_loss(f, wanted) + 1e3 * nn.functional.mse_loss(gram(f), texture)
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
