"""What is shown of a model against what MuJoCo's own viewer shows."""

from pathlib import Path
import subprocess
import sys

from mher_ros.simulation.shapes import mesh_file, visible_shapes
from mher_ros.tasks import make
import mujoco
import numpy as np
import pytest

MUJOCO_KINDS = {
    mujoco.mjtGeom.mjGEOM_PLANE: 'box',
    mujoco.mjtGeom.mjGEOM_SPHERE: 'sphere',
    mujoco.mjtGeom.mjGEOM_CAPSULE: 'cylinder',
    mujoco.mjtGeom.mjGEOM_CYLINDER: 'cylinder',
    mujoco.mjtGeom.mjGEOM_BOX: 'box',
    mujoco.mjtGeom.mjGEOM_MESH: 'mesh',
}
STL = np.dtype([('normal', '<f4', 3), ('vertices', '<f4', (3, 3)), ('attribute', '<u2')])


def random_data(model, seed=0):
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 1.0)
    mujoco.mj_kinematics(model, data)
    return data


def viewers_geoms(model, data):
    """Return the geoms that MuJoCo's viewer would draw, but for what leads the robot."""
    scene = mujoco.MjvScene(model, 1000)
    mujoco.mjv_updateScene(
        model,
        data,
        mujoco.MjvOption(),
        mujoco.MjvPerturb(),
        mujoco.MjvCamera(),
        mujoco.mjtCatBit.mjCAT_ALL,
        scene,
    )
    foreign = {body for body in range(model.nbody) if model.body_mocapid[body] >= 0}
    foreign |= {body for body in range(model.nbody) if model.body(body).name == 'target'}
    return [
        geom
        for geom in scene.geoms[: scene.ngeom]
        if geom.objtype == mujoco.mjtObj.mjOBJ_GEOM
        and geom.rgba[3] > 0.0
        and int(model.geom_bodyid[geom.objid]) not in foreign
    ]


def read_stl(path):
    content = path.read_bytes()
    count = int(np.frombuffer(content, '<u4', 1, offset=80)[0])
    assert len(content) == 84 + 50 * count
    return np.frombuffer(content, STL, count, offset=84)


def test_what_the_viewer_shows_is_shown_with_its_kind_size_colour_and_pose(shown):
    model, joint_names = shown
    data = random_data(model)
    shapes = visible_shapes(model, joint_names)
    positions, orientations = shapes.poses(data)
    by_name = dict(zip((shape.name for shape in shapes), range(len(shapes)), strict=True))
    assert len(by_name) == len(shapes)
    listed, geoms = list(shapes), viewers_geoms(model, data)
    capsules = sum(geom.type == mujoco.mjtGeom.mjGEOM_CAPSULE for geom in geoms)
    assert len(shapes) == len(geoms) + 2 * capsules > 0
    for geom in geoms:
        name = model.geom(geom.objid).name
        body = model.body(model.geom_bodyid[geom.objid]).name
        index = by_name[(name or f'{body}_{geom.objid}').removeprefix('robot0:')]
        shape = listed[index]
        assert shape.kind == MUJOCO_KINDS[geom.type]
        np.testing.assert_allclose(shape.rgba, geom.rgba, atol=1e-4)
        turned = np.empty(9)
        mujoco.mju_quat2Mat(turned, orientations[index])
        np.testing.assert_allclose(turned, data.geom_xmat[geom.objid], atol=1e-9)
        at = data.geom_xpos[geom.objid]
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            normal = turned.reshape(3, 3)[:, 2]
            at = at - normal * shape.size[2] / 2  # the slab's upper face is the plane
        elif geom.type == mujoco.mjtGeom.mjGEOM_BOX:
            np.testing.assert_allclose(shape.size, 2 * model.geom_size[geom.objid])
        elif geom.type == mujoco.mjtGeom.mjGEOM_SPHERE:
            np.testing.assert_allclose(shape.size, 2 * model.geom_size[geom.objid, 0])
        elif geom.type != mujoco.mjtGeom.mjGEOM_MESH:
            radius, half_length, _ = model.geom_size[geom.objid]
            np.testing.assert_allclose(shape.size, (2 * radius, 2 * radius, 2 * half_length))
        np.testing.assert_allclose(positions[index], at, atol=1e-9)


def test_orientations_are_of_unit_length(shown):
    model, joint_names = shown
    _, orientations = visible_shapes(model, joint_names).poses(random_data(model, 1))
    np.testing.assert_allclose(np.linalg.norm(orientations, axis=1), 1.0, atol=1e-9)


def test_capsule_is_a_cylinder_with_a_ball_at_each_end():
    env = make('reacher')
    data = random_data(env.model)
    shapes = visible_shapes(env.model, env.joint_names)
    positions = dict(zip((s.name for s in shapes), shapes.poses(data)[0], strict=True))
    geom = env.model.geom('link1')
    axis = data.geom_xmat[geom.id].reshape(3, 3)[:, 2] * geom.size[1]
    np.testing.assert_allclose(positions['link1_top'], positions['link1'] + axis, atol=1e-9)
    np.testing.assert_allclose(positions['link1_bottom'], positions['link1'] - axis, atol=1e-9)


def test_what_leads_the_arm_and_the_goal_are_not_shown():
    for task, foreign in (('fetch_reach', 'robot0:mocap'), ('reacher', 'target')):
        env = make(task)
        body = env.model.body(foreign).id
        assert env.model.body_geomnum[body] > 0
        assert all(shape.body != body for shape in visible_shapes(env.model, env.joint_names))


def test_geom_that_cannot_be_shown_is_refused_by_name():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom name="egg" type="ellipsoid" size="1 2 3"/></worldbody></mujoco>'
    )
    with pytest.raises(ValueError, match='geom egg .* capsule or plane, got mjGEOM_ELLIPSOID'):
        visible_shapes(model, ())


def test_mesh_file_holds_the_triangles_of_the_compiled_mesh(shown):
    model, _ = shown
    for mesh in range(model.nmesh):
        facets = read_stl(mesh_file(model, mesh))
        faces = model.mesh_face[model.mesh_faceadr[mesh] :][: model.mesh_facenum[mesh]]
        vertices = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
        np.testing.assert_array_equal(facets['vertices'], vertices[faces])
        lengths = np.linalg.norm(facets['normal'], axis=1)
        assert np.all((np.abs(lengths - 1.0) < 1e-3) | (lengths == 0.0))
        a, b, _ = np.moveaxis(facets['vertices'], 1, 0)
        np.testing.assert_allclose(np.sum(facets['normal'] * (b - a), axis=1), 0.0, atol=1e-4)


def test_meshes_are_written_once_to_the_users_cache(cache, monkeypatch):
    model = make('fetch_reach').model
    paths = [mesh_file(model, mesh) for mesh in range(model.nmesh)]
    assert all(path.is_relative_to(cache / 'mher_ros' / 'meshes') for path in paths)
    assert len(set(paths)) == model.nmesh
    before = [path.stat().st_mtime_ns for path in paths]
    assert [mesh_file(model, mesh) for mesh in range(model.nmesh)] == paths
    assert [path.stat().st_mtime_ns for path in paths] == before


def test_damaged_mesh_file_is_put_right():
    model = make('fetch_reach').model
    path = mesh_file(model, 0)
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    assert mesh_file(model, 0) == path
    assert path.read_bytes() == whole


@pytest.mark.parametrize('home', ['a file', 'nothing'])
def test_without_a_cache_meshes_go_to_a_folder_that_ends_with_the_process(tmp_path, home):
    blocked = tmp_path / 'blocked'
    blocked.write_text('not a folder')
    told = str(blocked) if home == 'a file' else 'not/absolute'
    code = (
        'from mher_ros.simulation.shapes import mesh_file\n'
        'from mher_ros.tasks import make\n'
        "path = mesh_file(make('fetch_reach').model, 0)\n"
        'assert path.is_file()\n'
        'print(path)\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', code],
        capture_output=True,
        text=True,
        env={'XDG_CACHE_HOME': told, 'HOME': str(blocked), 'TMPDIR': str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    assert path.is_relative_to(tmp_path)
    assert not path.exists()


@pytest.mark.parametrize('task', ['point2d_large', 'point2d_four_room'])
def test_square_has_the_tasks_size_and_walls_and_the_point_is_where_its_joints_say(task):
    env = make(task)
    env.reset(seed=0)
    model, *_ = env.scene()
    shapes = visible_shapes(model, env.joint_names)
    by_name = {shape.name: shape for shape in shapes}
    assert by_name['floor'].size[:2] == (2 * env.half_side, 2 * env.half_side)
    inside = np.clip(env.walls, -env.half_side, env.half_side).reshape(-1, 4)
    for number, (x_low, x_high, y_low, y_high) in enumerate(inside):
        wall = by_name[f'wall{number}']
        np.testing.assert_allclose(wall.size[:2], (x_high - x_low, y_high - y_low))
        np.testing.assert_allclose(
            wall.position[:2], ((x_low + x_high) / 2, (y_low + y_high) / 2), atol=1e-12
        )
    assert len(shapes) == 2 + len(env.walls)
    data = mujoco.MjData(model)
    data.qpos[:] = (1.5, -2.0)
    mujoco.mj_kinematics(model, data)
    position = shapes.poses(data)[0][list(by_name).index('point')]
    np.testing.assert_allclose(position, (1.5, -2.0, 0.0))
