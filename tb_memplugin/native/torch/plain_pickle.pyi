from tb_memplugin.native.torch.plain_values import Plain

class NotPlain(ValueError):
    asks_for: str

class TooLarge(ValueError): ...

def load(data: bytes | memoryview, room: int = ...) -> Plain: ...
