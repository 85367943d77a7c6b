from tb_memplugin.native.torch.plain_values import Plain

class NotPlain(ValueError):
    asks_for: str

def load(data: bytes | memoryview) -> Plain: ...
