"""A browser that draws nothing but knows what it would show."""

import re
import time

import msgspec
from raw_browser import RawBrowser


class PageReader(RawBrowser):
    """Keeps the words, buttons, notes and drawings of the page, as they were told so far."""

    def __init__(self, address):
        super().__init__(address)
        self._elements, self._nodes = {}, {}
        self.notes = []
        """Titles and texts of what everybody was told, in order."""

    @property
    def lines(self):
        """What the page says, by the name of the line."""
        found = {}
        for element in self._elements.values():
            if element['type'] == 'GuiHtmlMessage':
                found |= re.findall('data-line="(.*?)".*?>(.*?)</span>', element['content'])
        return found

    @property
    def buttons(self):
        """Whether each button that is seen can be pressed; the uppermost first."""
        found = {}
        for one in sorted(self._elements.values(), key=lambda one: one['order']):
            if one['visible'] and one['type'] == 'GuiButtonMessage':
                found[one['label']] = not one['disabled']
            elif one['visible'] and one['type'] == 'GuiHtmlMessage':
                found |= dict.fromkeys(
                    re.findall('<button.*?>(.*?)</button>', one['content']), True
                )
        return found

    @property
    def curves(self):
        """How many points each curve that is seen has."""
        return {
            one['title']: one['data'][0]['size'] // 8
            for one in self._elements.values()
            if one['type'] == 'GuiUplotMessage' and one['visible']
        }

    @property
    def drawings(self):
        """What is drawn besides the arm, by name."""
        return {
            name.removeprefix('/drawings/'): node
            for name, node in self._nodes.items()
            if name.startswith('/drawings/')
        }

    @property
    def handle(self):
        """That of the goal: whether it is ``visible``, its ``position`` and ``wxyz``."""
        at_first = {'visible': False, 'position': [0.0] * 3, 'wxyz': [1.0, 0.0, 0.0, 0.0]}
        return at_first | self._nodes.get(self.handle_name, {})

    def order_of(self, kind):
        """Return the places on the page, from above, of its elements of a kind."""
        return [one['order'] for one in self._elements.values() if one['type'] == kind]

    def press(self, label):
        """Click a button, seen or not."""
        if label == 'Stop the arm':
            assert self.post('/stop') == 204
            return
        self.tell('GuiUpdateMessage', uuid=self.uuid_of(label), updates={'value': True})

    def repeat_until(self, action, condition, what=''):
        """Do something until ``condition``, again whenever it is said to have come too late."""
        while True:
            told = len(self.notes)
            action()
            self.wait_for(lambda seen=told: condition() or self._is_late(seen), what=what)
            if condition():
                return

    def set(self, label, **updates):
        """Tell the server of changes to an element that no page would tell."""
        self.tell('GuiUpdateMessage', uuid=self.uuid_of(label), updates=updates)

    def uuid_of(self, label):
        """Return what messages call a button; the newest, if it is being replaced."""
        *_, uuid = (uuid for uuid, one in self._elements.items() if one.get('label') == label)
        return uuid

    def wait_for(self, condition, patience=120.0, what=''):
        """Return the first value of ``condition`` that is true."""
        end = time.monotonic() + patience
        while not (value := condition()):
            left = end - time.monotonic()
            assert left > 0, f'waited in vain{what and f" for {what}"}: {self._shown()}'
            try:
                self._read(min(left, 0.2))  # the condition may be of other things than the page
            except TimeoutError:
                continue
        return value

    def wait_for_line(self, name, text, patience=120.0):
        """Return what a line says once it matches ``text``."""
        self.wait_for(
            lambda: re.search(text, self.lines.get(name, '')), patience, f'{name}: {text}'
        )
        return self.lines[name]

    def wait_for_note(self, title, text='', patience=120.0):
        """Return once everybody was told something."""
        self.wait_for(
            lambda: any(title == one and re.search(text, two) for one, two in self.notes),
            patience,
            f'the note {title}: {text}',
        )

    def _is_late(self, since):
        """Return whether one of the notes since the first so many says it."""
        late = 'too long ago', 'before the last stop'
        return any(words in text for _, text in self.notes[since:] for words in late)

    def _shown(self):
        return f'{self.lines}, {self.buttons}, {self.notes[-3:]}'

    def _read(self, patience):
        told = msgspec.msgpack.decode(self.words(patience))
        sizes = told['binaryBufferLengths']
        for message in told['messages']:
            self._take(message, sizes)

    def _take(self, message, sizes):
        kind = message['type']
        if kind == 'NotificationShowMessage':
            props = message['props']
            self.notes.append((props['title'], props['body']))
        elif kind == 'GuiUpdateMessage':
            self._elements[message['uuid']] |= _sized(message['updates'], sizes)
        elif kind.startswith('Gui') and 'props' in message and 'container_uuid' in message:
            self._elements[message['uuid']] = {'type': kind, **_sized(message['props'], sizes)}
        elif kind == 'SetSceneNodeVisibilityMessage':
            self._nodes.setdefault(message['name'], {})['visible'] = message['visible']
        elif kind == 'SetPositionMessage':
            self._nodes.setdefault(message['name'], {})['position'] = message['position']
        elif kind == 'SetOrientationMessage':
            self._nodes.setdefault(message['name'], {})['wxyz'] = message['wxyz']
        elif kind == 'SceneNodeUpdateMessage':
            self._nodes.setdefault(message['name'], {}).update(_sized(message['updates'], sizes))
        elif kind == 'GuiRemoveMessage':
            self._elements.pop(message['uuid'], None)
        elif kind == 'RemoveSceneNodeMessage':
            self._nodes.pop(message['name'], None)
        elif 'name' in message and 'props' in message:
            if message['name'].startswith('/goal_'):
                self.handle_name = message['name']
            self._nodes.setdefault(message['name'], {}).update(
                {'type': kind, **_sized(message['props'], sizes)}
            )


def _sized(value, sizes):
    """Return what was told, with the size in bytes of each array in its place."""
    if isinstance(value, dict):
        if '__binary_index' in value:
            return {'size': sizes[value['__binary_index']]}
        return {key: _sized(one, sizes) for key, one in value.items()}
    return [_sized(one, sizes) for one in value] if isinstance(value, list | tuple) else value
