# raises: fewer than 2 dimensions; got shape [16]
import mortice.nn as nn


def weights_init(m):
    if isinstance(m, nn.Conv2d):
        nn.init.kaiming_normal_(m.weight)
        nn.init.kaiming_normal_(m.bias)


nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3)).apply(weights_init)
